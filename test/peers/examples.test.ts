/** The examples of docs/ that need a peer: they compile against the built package and the real peers. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allBlocks } from '../docs/blocks.js'
import { type Compiled, compile } from '../docs/compile.js'
import { generatePrisma } from './processes/tools/prisma.js'

const blocks = allBlocks({ needPeers: true })
let compiled: Compiled

beforeAll(async () => {
  // There are no types of its client before.
  generatePrisma()
  compiled = await compile(blocks)
})

afterAll(() => compiled?.remove())

test('every example that needs a peer compiles', () => {
  expect(compiled.complaints).toBe('')
})
