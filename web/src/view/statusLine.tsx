import type { Client } from '../conversation/client'
import { connectionState } from './connection'
import { RouteButton } from './route'

/** StatusLine shows the state of the connection and the route to the agent. */
export function StatusLine({ client }: { client: Client }) {
  const { tone, text } = connectionState(client)
  return (
    <div class="state-line">
      <p class={`state ${tone}`} data-state={client.status.value.state}><span class="dot" />{text}</p>
      <RouteButton client={client} />
    </div>
  )
}
