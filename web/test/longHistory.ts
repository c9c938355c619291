import type { Page } from 'playwright-core'

/** A message with many kinds of blocks, of about this many characters. */
export function prose(size: number): string {
  const parts: string[] = []
  for (let i = 1, length = 0; length < size; i++) {
    const part = [
      `Paragraph ${i} has **bold**, *slanted* and \`code\` words, a [link](https://example.com/${i}) and goes on for a while, as replies do.`,
      `- first of ${i}\n- second, which is longer\n- third`,
      '```python\ndef step(n):\n    return [n * k for k in range(10)]  # ' + i + '\n```',
      `| Name | Value |\n|------|-------|\n| a | ${i} |\n| b | ${i * 2} |`,
    ][i % 4]!
    parts.push(part)
    length += part.length + 2
  }
  return parts.join('\n\n').slice(0, size)
}

/**
 * remember writes a history of this many messages into the browser's database, in the page's
 * format.
 */
export function remember(page: Page, count: number): Promise<void> {
  return page.evaluate(async (count) => {
    const { url, id } = JSON.parse(localStorage.getItem('hermes.profile')!) as { url: string; id: string }
    const db = await new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(`hermes-mobile ${url} ${id}`)
      request.onsuccess = () => resolve(request.result)
      request.onerror = () => reject(request.error)
    })
    const tx = db.transaction('items', 'readwrite')
    const items = tx.objectStore('items')
    const began = Date.now() - count * 60_000
    for (let n = 1; n <= count; n++) {
      const mine = n % 2 === 1
      const key = (mine ? 'm' : 'a') + 'old-' + n
      const text = mine ? `Question ${n}: what about it?` : `Answer ${n} with **bold** words.\n\n- one\n- two\n\nAnd \`code\` at the end, after a sentence that takes more than one line on a phone.`
      items.put({ kind: 'text', key, id: 'old-' + n, n, at: began + n * 60_000, mine, text, final: true, replyTo: '', ...(mine && { progress: 'accepted' }) })
    }
    await new Promise<void>((resolve, reject) => {
      tx.oncomplete = () => resolve()
      tx.onabort = () => reject(tx.error)
    })
    db.close()
  }, count)
}
