/** Prisma, whose client is generated from `test/peers/prisma/schema.prisma` into `node_modules`, and not kept. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type PostgresStore, postgres } from '../../../processes/own-name.js'
import { folder, peer } from '../peer.js'
import { connections, type ToolClient } from './client.js'

interface Models {
  readonly effect: { create(row: { data: object }): Promise<unknown> }
  readonly uniqueEffect: { create(row: { data: object }): Promise<unknown> }
  $transaction(work: (tx: Models) => Promise<unknown>): Promise<unknown>
}

/** What is used of the generated client, which the compiler of these files does not see. */
interface Client extends Models {
  readonly $queryRawUnsafe: (text: string) => Promise<unknown>
  $transaction(work: (tx: Models) => Promise<unknown>): Promise<unknown>
  readonly $connect: () => Promise<void>
  $disconnect(): Promise<void>
}

const modules = join(folder, 'node_modules')
const schema = join(folder, 'prisma/schema.prisma')

function isGenerated(): boolean {
  const kept = join(modules, '.prisma/client/schema.prisma')
  return existsSync(kept) && readFileSync(kept, 'utf8') === readFileSync(schema, 'utf8')
}

/** Once for each schema, by one test file at a time. The engine that it would download is not needed for it. */
export function generatePrisma(): void {
  const lock = join(modules, '.generating-prisma')
  while (!locked(lock)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  try {
    if (isGenerated()) return
    const { resolve } = createRequire(join(folder, 'package.json'))
    const cli = join(dirname(resolve('prisma/package.json')), 'build/index.js')
    execFileSync(process.execPath, [cli, 'generate', '--no-hints', '--schema', schema], {
      env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' },
      stdio: 'pipe',
    })
  } finally {
    rmSync(lock, { recursive: true, force: true })
  }
}

/** One that is older than a generation can take was left by a run that was killed. */
function locked(lock: string): boolean {
  try {
    mkdirSync(lock)
    return true
  } catch {
    const made = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
    if (Date.now() - made > 60_000) rmSync(lock, { recursive: true, force: true })
    return false
  }
}

export async function prismaOnPg(connectionString: string): Promise<ToolClient> {
  generatePrisma()
  const { PrismaPg } = await peer<typeof import('@prisma/adapter-pg')>('@prisma/adapter-pg')
  const { PrismaClient } = await peer<{ PrismaClient: new (options: object) => Client }>('@prisma/client')
  const adapter = new PrismaPg({ connectionString, max: connections, allowExitOnIdle: true })
  const prisma = new PrismaClient({ adapter })
  return {
    handle: prisma,
    store: (options) => postgres(prisma, options) as PostgresStore<object>,
    insert: async (tx, { key, payload, generation }) =>
      ((tx ?? prisma) as Models).effect.create({ data: { key, payload, generation: BigInt(generation) } }),
    insertUnique: async (tx, key) => (tx as Models).uniqueEffect.create({ data: { key } }),
    violation: 'PrismaClientKnownRequestError',
    build: (tx, { key, payload, generation }) => {
      const query = (tx as Models).effect.create({ data: { key, payload, generation: BigInt(generation) } })
      return () => query
    },
    nested: (tx, work) => (tx as Models).$transaction(work),
    transaction: (work) => prisma.$transaction(work),
    end: () => prisma.$disconnect(),
  }
}
