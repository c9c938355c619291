import { Component, type ComponentChildren } from 'preact'

interface Props {
  /** Replaces children that can't be drawn. */
  fallback: () => ComponentChildren
  /** A new value tries to draw the children again. */
  resetKey: unknown
  children: ComponentChildren
}

/**
 * ErrorBoundary contains an error in its children: one message that can't be drawn must not break
 * the rest of the page.
 */
export class ErrorBoundary extends Component<Props, { failed: boolean }> {
  override state = { failed: false }

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true }
  }

  override componentDidCatch(error: unknown): void {
    console.error('a part of the page could not be drawn', error)
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.failed && before.resetKey !== this.props.resetKey) this.setState({ failed: false })
  }

  override render() {
    return this.state.failed ? this.props.fallback() : this.props.children
  }
}
