import { useState } from 'preact/hooks'
import { signOut } from '../talk/here'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { Avatar } from './avatar'
import { Connection } from './connection'
import { copy } from './copy'
import { inform } from './notice'

/**
 * Waiting is for a device that the owner has not approved. The server makes a code when it gets a first message; that message is kept and
 * goes to the agent with the approval, which the server tells by itself.
 */
export function Waiting({ talk }: { talk: Talk }) {
  const { pairing, unconfirmed } = talk.status.value
  const [text, setText] = useState(t('firstMessage'))
  const command = /hermes-mobile pairing approve ([A-Z0-9]{6,12})/.exec(pairing)
  const send = (event: Event) => {
    event.preventDefault()
    if (text.trim()) void talk.sending.say(text.trim())
  }
  /** A code lives an hour; a new connection says the first message again, and gets a new one. */
  const askAgain = () => {
    talk.device.suspend()
    talk.device.reconnect()
  }
  return (
    <main class="screen welcome">
      <div class="card-panel">
        <Avatar state={pairing ? 'thinking' : 'idle'} />
        <h1>{t('notApproved')}</h1>
        <Connection talk={talk} />
        {command ? (
          <>
            <p>{t('showCode')}</p>
            <output class="code-big" dir="ltr" aria-label={t('pairingCode')}>{command[1]}</output>
            <p>{t('ownerRuns')}</p>
            <div class="command">
              <code dir="ltr">{command[0]}</code>
              <button type="button" class="small" onClick={async () => inform(t((await copy(command[0])) ? 'copied' : 'notCopied'))}>{t('copy')}</button>
            </div>
            <p class="quiet" role="status">{t('goesOn')}</p>
          </>
        ) : pairing ? (
          <p role="status" dir="auto">{pairing}</p>
        ) : unconfirmed > 0 ? (
          <p role="status">{t('asking')}</p>
        ) : (
          <form onSubmit={send}>
            <label>{t('firstMessageLabel')}<textarea rows={2} value={text} onInput={(e) => setText(e.currentTarget.value)} dir="auto" /></label>
            <button type="submit" class="primary wide">{t('askForCode')}</button>
          </form>
        )}
        {pairing && <button type="button" class="link" onClick={askAgain}>{t('askAgain')}</button>}
        <button type="button" class="link" onClick={() => void signOut()}>{t('startOver')}</button>
      </div>
    </main>
  )
}
