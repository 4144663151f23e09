// index.d.ts declares the names that index.js exports: tsc reads the one, programs get the other.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import * as parley from 'parley-broker'

test('what is exported is declared, as a function or a class, and nothing else is', async () => {
  const declared = await readFile(new URL('../index.d.ts', import.meta.url), 'utf8')
  const names = [...declared.matchAll(/^export (function|class) (\w+)/gm)].map(([, kind, name]) => `${kind} ${name}`)
  const exported = Object.entries(parley).map(([name, value]) => `${/^class\b/.test(String(value)) ? 'class' : 'function'} ${name}`)
  assert.deepEqual(exported.sort(), [...new Set(names)].sort())
})
