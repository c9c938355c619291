// A test reporter that prints failures, skipped tests, and the totals.
export default async function* quiet(source) {
  let passed = 0
  let failed = 0
  const skipped = []
  for await (const { type, data } of source) {
    if (data.details?.type === 'suite' || (data.nesting === 0 && data.file && data.name === data.file)) continue
    if (type === 'test:pass') {
      if (data.skip !== undefined) skipped.push(`${data.name}: ${data.skip}`)
      else passed++
    }
    if (type === 'test:fail') {
      failed++
      const error = data.details?.error
      yield `FAIL ${data.name}\n${error?.cause?.stack ?? error?.cause ?? error?.stack ?? error}\n`
    }
    if (type === 'test:stderr' && /error/i.test(data.message)) yield data.message
  }
  for (const name of skipped) yield `skipped: ${name}\n`
  yield `${passed} passed, ${failed} failed\n`
}
