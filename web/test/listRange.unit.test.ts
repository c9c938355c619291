import assert from 'node:assert/strict'
import { it } from 'node:test'
import { around, bounds, down, end, FIRST, MOST, STEP, up } from '../src/view/window'

const keys = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => 'k' + (from + i))

it('of a long conversation a part is shown, which moves up and down and has no gap', () => {
  const order = keys(0, 1000)
  assert.deepEqual(bounds(order, {}), [1000 - FIRST, 1000])
  let part = end(order)
  assert.deepEqual(bounds(order, part), [1000 - MOST, 1000])
  for (let before = 1000 - MOST; before > 0; before = bounds(order, part)[0]) {
    part = up(order, part)
    const [from, to] = bounds(order, part)
    assert.ok(from === Math.max(0, before - STEP) && to - from === MOST, `${from} to ${to}`)
  }
  while (part.last !== undefined) part = down(order, part)
  assert.deepEqual(bounds(order, part), [1000 - MOST, 1000])
  assert.deepEqual(bounds(order, up(order, {})), [1000 - FIRST - STEP, 1000])
})

it('a part at the end grows with what comes, one further up stays', () => {
  const order = keys(0, 1000)
  const later = keys(0, 1003)
  assert.deepEqual(bounds(later, end(order)), [1000 - MOST, 1003])
  const above = up(order, end(order))
  assert.deepEqual(bounds(later, above), bounds(order, above))
  // What was read from the disk stands before it, and moves nothing.
  const older = [...keys(-60, 0), ...order]
  assert.deepEqual(bounds(older, above).map((n) => n - 60), bounds(order, above))
})

it('shows the rows about one that is far away, and goes on where a row at its edge is gone', () => {
  const order = keys(0, 1000)
  for (const at of [0, 5, 500, 999]) {
    const [from, to] = bounds(order, around(order, 'k' + at))
    assert.ok(from <= at && at < to && to - from <= MOST, `${at} in ${from} to ${to}`)
  }
  const part = around(order, 'k500')
  const [from, to] = bounds(order.filter((key) => key !== part.first && key !== part.last), part)
  assert.ok(to > from && to - from <= MOST)
  assert.deepEqual(bounds([], part), [0, 0])
})
