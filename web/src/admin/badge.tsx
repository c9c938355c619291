/** State says in a word or two how something is. */
export function Badge({ good, text }: { good: boolean; text: string }) {
  return <span class={good ? 'own-badge good' : 'own-badge'}>{text}</span>
}
