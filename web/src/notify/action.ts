import type { NoticeAction, NotificationTexts } from './notification'

/** ActionOutcome is the result of a button. `retry`: it is worth another try. */
export interface ActionOutcome {
  text: string
  retry: boolean
}

/**
 * sendAction sends the answer of a notification's button to the server and describes the outcome.
 */
export async function sendAction(url: string, choice: NoticeAction, labels: NoticeAction[], speech: NotificationTexts): Promise<ActionOutcome> {
  const decided = (id: string) =>
    id === 'deny' ? speech.text('noticeDenied') : id === 'once' ? speech.text('noticeAllowed') : speech.text('noticeAnswered', { what: labels.find((one) => one.id === id)?.label || id })
  const lost = { text: speech.text('noticeNotReached'), retry: true }
  let status: number
  let answer: { done?: boolean; option_id?: string }
  try {
    const response = await fetch(url, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token: choice.token }), credentials: 'omit', cache: 'no-store', redirect: 'error',
      signal: AbortSignal.timeout(20_000),
    })
    status = response.status
    answer = Object(await response.json()) as typeof answer
  } catch {
    return lost // also if something between this device and the server answered instead
  }
  const { done, option_id: option = '' } = answer
  switch (status) {
    case 200:
      return done ? { text: decided(option || choice.id), retry: false } : lost
    case 409:
      return { text: [speech.text('noticeBefore'), option && decided(option)].filter(Boolean).join(' '), retry: false }
    case 410:
      return { text: speech.text('noticeOver'), retry: false }
    case 429:
    case 503:
      return lost
    default:
      return status > 500 ? lost : { text: speech.text('noticeRejected'), retry: false }
  }
}
