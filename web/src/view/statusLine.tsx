import type { Client } from '../conversation/client'
import { connectionState } from './connection'
import { RouteButton } from './route'

/** State is the connection in a word, and the way that the agent is reached by where that is known. */
export function StatusLine({ client }: { client: Client }) {
  const { tone, text } = connectionState(client)
  return (
    <div class="state-line">
      <p class={`state ${tone}`} data-state={client.status.value.state}><span class="dot" />{text}</p>
      <RouteButton client={client} />
    </div>
  )
}
