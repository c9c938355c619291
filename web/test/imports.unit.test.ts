import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { it } from 'node:test'
import ts from 'typescript'

/** imports returns the files of the same folder tree that a file imports, types and dynamic imports included. */
function imports(file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(file, 'utf8'), true, true)
  return importedFiles.filter(({ fileName }) => fileName.startsWith('.')).flatMap(({ fileName }) => {
    const path = resolve(dirname(file), fileName.replace(/\.js$/, ''))
    return ['', '.ts', '.tsx'].map((ending) => path + ending).filter((name) => /\.tsx?$/.test(name) && existsSync(name)).slice(0, 1)
  })
}

/** cycle returns the first import cycle in a graph, its first file repeated at the end, or nothing. */
function cycle(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const path: string[] = []
  const visit = (file: string): string[] => {
    if (done.has(file)) return []
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    path.push(file)
    for (const next of graph.get(file) ?? []) {
      const found = visit(next)
      if (found.length > 0) return found
    }
    path.pop()
    done.add(file)
    return []
  }
  for (const file of graph.keys()) {
    const found = visit(file)
    if (found.length > 0) return found
  }
  return []
}

it('finds an import cycle', () => {
  assert.deepEqual(cycle(new Map([['a', ['b']], ['b', ['c', 'd']], ['c', []], ['d', ['b']]])), ['b', 'd', 'b'])
  assert.deepEqual(cycle(new Map([['a', ['b', 'c']], ['b', ['c']], ['c', []]])), [])
})

for (const folder of ['src', '../sdk/ts/src']) {
  it(`${folder} has no import cycle`, () => {
    const root = resolve(folder)
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name)).map((name) => join(root, name))
    const graph = new Map(files.map((file) => [file, imports(file)]))
    assert.ok([...graph.values()].flat().length > files.length, 'the imports were not found')
    assert.deepEqual(cycle(graph).map((file) => relative(root, file)), [])
  })
}
