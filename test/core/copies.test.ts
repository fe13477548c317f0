/** Two copies of the package in one process, and one that is required as well as imported: errors, replies and instances are known to all. */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
let copy: string

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'retrysafe-copy-'))
  for (const part of ['dist', 'package.json']) cpSync(join(root, part), join(copy, part), { recursive: true })
})

afterAll(() => rmSync(copy, { recursive: true, force: true }))

/** Runs a module in a process of its own, where nobody but Node decides what is loaded how often; answers with what it prints. */
async function printedBy(script: string): Promise<unknown> {
  const text = `const copy = (name) => import(${JSON.stringify(`file://${copy}/dist/`)} + name)\n${script}`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', text], {
    cwd: root,
  })
  return JSON.parse(stdout)
}

const print = (value: string) => `console.log(JSON.stringify(${value}))`

test('an error of one copy is known to the other, though their classes differ', async () => {
  const told = await printedBy(`
    const one = await import('retrysafe')
    const other = await copy('index.js')
    const { memory } = await copy('stores/memory.js')
    const safe = other.retrysafe({ store: memory() })
    const error = await safe.transaction({ scope: '', key: 'k' }, () => 1).catch((thrown) => thrown)
    const own = await one.retrysafe({ store: memory() }).transaction({ scope: 's', key: '' }, () => 1).catch((thrown) => thrown)
    ${print(`{
      same: one.isRetrysafeError === other.isRetrysafeError,
      known: [one.isRetrysafeError(error), other.isRetrysafeError(own)],
      codes: [error.code, own.code],
      sameClass: error.constructor === own.constructor,
      others: [undefined, null, {}, new Error('x'), { code: 'KEY_INVALID' }].map(one.isRetrysafeError),
    }`)}`)
  expect(told).toEqual({
    same: false,
    known: [true, true],
    codes: ['SCOPE_INVALID', 'KEY_INVALID'],
    sameClass: false,
    others: [false, false, false, false, false],
  })
})

test('an adapter of one copy serves an instance and a reply of the other', async () => {
  const told = await printedBy(`
    import express from 'express'
    import { idempotent } from 'retrysafe/express'
    const { retrysafe, reply } = await copy('index.js')
    const { memory } = await copy('stores/memory.js')
    const safe = retrysafe({ store: memory(), mode: 'transaction', scope: 'caller' })
    const app = express()
    app.post('/', idempotent(safe, {}, () => reply(201, { id: 1 })))
    const server = app.listen(0, '127.0.0.1', async () => {
      const url = 'http://127.0.0.1:' + server.address().port
      const send = (key) => fetch(url, { method: 'POST', headers: { 'idempotency-key': key } })
      const answers = [await send('k'), await send('k'), await send('"')]
      const told = []
      for (const answer of answers) told.push([answer.status, answer.headers.get('idempotent-replayed'), await answer.text()])
      ${print('told.map(([status, replayed, text]) => [status, replayed, JSON.parse(text).code ?? text])')}
      server.closeAllConnections()
      server.close()
    })`)
  expect(told).toEqual([
    [201, null, '{"id":1}'],
    [201, 'true', '{"id":1}'],
    [400, null, 'KEY_INVALID'],
  ])
})

test('what is required is what is imported', async () => {
  const told = await printedBy(`
    import { createRequire } from 'node:module'
    const require = createRequire(import.meta.url)
    const required = require('retrysafe')
    const imported = await import('retrysafe')
    const { memory } = require('retrysafe/memory')
    const safe = required.retrysafe({ store: memory() })
    const error = await safe.run({ scope: 's', key: '\\u0000' }, () => 1).catch((thrown) => thrown)
    ${print('{ known: imported.isRetrysafeError(error), code: error.code, same: required.retrysafe === imported.retrysafe }')}`)
  expect(told).toEqual({ known: true, code: 'KEY_INVALID', same: true })
})
