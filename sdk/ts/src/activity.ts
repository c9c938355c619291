import type { Inbox } from './inbox.js'

/** Activity holds the typing indicator and the avatar. Both turn off when no sign of work follows. */
export class Activity {
  typing = false
  avatar = 'idle'
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly inbox: Inbox,
    private readonly lease: number,
    private readonly changed: () => void,
  ) {}

  set(typing: boolean, avatar: string): void {
    if (typing !== this.typing || avatar !== this.avatar) {
      this.typing = typing
      this.avatar = avatar
      this.inbox.push({ event: { type: 'activity', typing, avatar }, key: 'activity' })
      this.changed()
    }
    this.sign()
  }

  off(): void {
    this.set(false, 'idle')
  }

  /** sign records a sign of work: a piece of a reply, a tool, a card. */
  sign(): void {
    clearTimeout(this.timer)
    if (this.typing || (this.avatar !== 'idle' && this.avatar !== '')) this.timer = setTimeout(() => this.off(), this.lease)
  }

  stop(): void {
    clearTimeout(this.timer)
  }
}
