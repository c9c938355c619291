/** Badge shows a state in a word or two. */
export function Badge({ good, text }: { good: boolean; text: string }) {
  return <span class={good ? 'admin-badge good' : 'admin-badge'}>{text}</span>
}
