import type { Choice, Speech } from './notice'

/** What became of a button. `again`: it is worth another try. */
export interface Pressed {
  words: string
  again: boolean
}

/** press gives the answer of a button to the server, and says in words what became of it. */
export async function press(url: string, choice: Choice, labels: Choice[], speech: Speech): Promise<Pressed> {
  const decided = (id: string) =>
    id === 'deny' ? speech.say('noticeDenied') : id === 'once' ? speech.say('noticeAllowed') : speech.say('noticeAnswered', { what: labels.find((one) => one.id === id)?.label || id })
  const lost = { words: speech.say('noticeNotReached'), again: true }
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
    return lost // also where something between here and the server answers in its place
  }
  const { done, option_id: option = '' } = answer
  switch (status) {
    case 200:
      return done ? { words: decided(option || choice.id), again: false } : lost
    case 409:
      return { words: [speech.say('noticeBefore'), option && decided(option)].filter(Boolean).join(' '), again: false }
    case 410:
      return { words: speech.say('noticeOver'), again: false }
    case 429:
    case 503:
      return lost
    default:
      return status > 500 ? lost : { words: speech.say('noticeRefused'), again: false }
  }
}
