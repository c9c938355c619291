import { Component, type ComponentChildren } from 'preact'

interface Props {
  /** What stands in the place of children that cannot be drawn. */
  fallback: () => ComponentChildren
  /** Another value tries to draw the children again. */
  resetKey: unknown
  children: ComponentChildren
}

/** Boundary keeps a fault of what it holds to itself: one message that cannot be drawn must not take the rest of the page along. */
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
