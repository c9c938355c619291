import assert from 'node:assert/strict'
import { it } from 'node:test'
import { centeredOn, bounds, growDown, newest, FIRST_ROWS, MAX_ROWS, GROW_BY, growUp } from '../src/view/listRange'

const keys = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => 'k' + (from + i))

it('shows a part of a long conversation that moves up and down without gaps', () => {
  const order = keys(0, 1000)
  assert.deepEqual(bounds(order, {}), [1000 - FIRST_ROWS, 1000])
  let part = newest(order)
  assert.deepEqual(bounds(order, part), [1000 - MAX_ROWS, 1000])
  for (let before = 1000 - MAX_ROWS; before > 0; before = bounds(order, part)[0]) {
    part = growUp(order, part)
    const [from, to] = bounds(order, part)
    assert.ok(from === Math.max(0, before - GROW_BY) && to - from === MAX_ROWS, `${from} to ${to}`)
  }
  while (part.last !== undefined) part = growDown(order, part)
  assert.deepEqual(bounds(order, part), [1000 - MAX_ROWS, 1000])
  assert.deepEqual(bounds(order, growUp(order, {})), [1000 - FIRST_ROWS - GROW_BY, 1000])
})

it('grows with new rows at the end, and stays in place further up', () => {
  const order = keys(0, 1000)
  const later = keys(0, 1003)
  assert.deepEqual(bounds(later, newest(order)), [1000 - MAX_ROWS, 1003])
  const above = growUp(order, newest(order))
  assert.deepEqual(bounds(later, above), bounds(order, above))
  // Stored rows are put before it and move nothing.
  const older = [...keys(-60, 0), ...order]
  assert.deepEqual(bounds(older, above).map((n) => n - 60), bounds(order, above))
})

it('shows the rows around a distant one, and continues if a row at its edge is gone', () => {
  const order = keys(0, 1000)
  for (const at of [0, 5, 500, 999]) {
    const [from, to] = bounds(order, centeredOn(order, 'k' + at))
    assert.ok(from <= at && at < to && to - from <= MAX_ROWS, `${at} in ${from} to ${to}`)
  }
  const part = centeredOn(order, 'k500')
  const [from, to] = bounds(order.filter((key) => key !== part.first && key !== part.last), part)
  assert.ok(to > from && to - from <= MAX_ROWS)
  assert.deepEqual(bounds([], part), [0, 0])
})
