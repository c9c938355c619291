import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GOAL, judge, score } from './lighthouse'
import { noBrowser } from './rig'

// The page's speed depends on the machine. make bench measures it.
const CATEGORIES = ['accessibility', 'best-practices'] as const

describe('Lighthouse', { skip: noBrowser }, () => {
  it(`gives the chat at least ${GOAL} for accessibility and best practices, on a phone and a desktop`, { timeout: 240_000 }, async () => {
    const { results, trouble } = await judge(['mobile', 'desktop'], CATEGORIES)
    for (const result of results) {
      for (const category of CATEGORIES) {
        const short = result.categories[category]!.auditRefs.map(({ id }) => result.audits[id]!).filter((audit) => audit.score !== null && audit.score < 1)
        assert.ok(score(result, category) >= GOAL, `${category} on ${result.configSettings.formFactor} has ${score(result, category)}: ${short.map((audit) => `${audit.title} ${JSON.stringify(audit.details ?? '').slice(0, 1000)}`).join('\n')}`)
      }
    }
    assert.deepEqual(trouble, [])
  })
})
