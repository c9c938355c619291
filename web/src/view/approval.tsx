import { useState } from 'preact/hooks'
import { signOut } from '../conversation/currentClient'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { Avatar } from './avatar'
import { ConnectionNotice } from './connection'
import { copyText } from './clipboard'
import { showToast } from './toast'

/**
 * AwaitingApproval is the screen of a device that the owner hasn't approved. The server creates an
 * approval code for the first message. It keeps the message and gives it to the agent once the
 * owner approves the device.
 */
export function AwaitingApproval({ client }: { client: Client }) {
  const { pairing, unconfirmed } = client.status.value
  const [text, setText] = useState(t('firstMessage'))
  const command = /hermes-mobile pairing approve ([A-Z0-9]{6,12})/.exec(pairing)
  const send = (event: Event) => {
    event.preventDefault()
    if (text.trim()) void client.sender.sendText(text.trim())
  }
  /**
   * An approval code is valid for an hour. A new connection sends the first message again and gets
   * a new code.
   */
  const askAgain = () => {
    client.device.suspend()
    client.device.reconnect()
  }
  return (
    <main class="screen welcome">
      <div class="card-panel">
        <Avatar state={pairing ? 'thinking' : 'idle'} />
        <h1>{t('notApproved')}</h1>
        <ConnectionNotice client={client} />
        {command ? (
          <>
            <p>{t('showCode')}</p>
            <output class="code-big" dir="ltr" aria-label={t('approvalCode')}>{command[1]}</output>
            <p>{t('approvalCommand')}</p>
            <div class="command">
              <code dir="ltr">{command[0]}</code>
              <button type="button" class="small" onClick={async () => showToast(t((await copyText(command[0])) ? 'copied' : 'notCopied'))}>{t('copy')}</button>
            </div>
            <p class="muted" role="status">{t('approvalContinues')}</p>
          </>
        ) : pairing ? (
          <p role="status" dir="auto">{pairing}</p>
        ) : unconfirmed > 0 ? (
          <p role="status">{t('requestingCode')}</p>
        ) : (
          <form onSubmit={send}>
            <label>{t('firstMessageLabel')}<textarea rows={2} value={text} onInput={(e) => setText(e.currentTarget.value)} dir="auto" /></label>
            <button type="submit" class="primary wide">{t('requestCode')}</button>
          </form>
        )}
        {pairing && <button type="button" class="link" onClick={askAgain}>{t('requestNewCode')}</button>}
        <button type="button" class="link" onClick={() => void signOut()}>{t('startOver')}</button>
      </div>
    </main>
  )
}
