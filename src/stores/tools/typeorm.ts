/** TypeORM, by its DataSource. */
import { hasFunctions, type KnownTool, known, type SqlAnswer } from './tool.js'

/** What is used of a DataSource; a type test holds it against the real one. */
export interface TypeormDataSource {
  readonly transaction: (...parameters: never[]) => Promise<unknown>
  readonly createQueryRunner: (...parameters: never[]) => unknown
  readonly manager: object
}

/** What the work writes through: the `EntityManager` of the transaction. */
export type TypeormTx<Source extends TypeormDataSource> = Source['manager']

interface Runner {
  query(
    text: string,
    parameters: undefined,
    structured: true,
  ): Promise<{ readonly records?: readonly object[]; readonly affected?: number }>
  release(): Promise<void>
}

interface Manager {
  readonly queryRunner: Runner
}

interface Real {
  transaction<Value>(work: (tx: Manager) => Promise<Value>): Promise<Value>
  transaction<Value>(isolation: string, work: (tx: Manager) => Promise<Value>): Promise<Value>
  createQueryRunner(mode: 'master'): Runner
  readonly options?: { readonly type?: string }
}

export function typeorm(handle: unknown): KnownTool | undefined {
  // An EntityManager has `transaction` too.
  if (!hasFunctions(handle, ['transaction', 'createQueryRunner', 'getRepository'])) return undefined
  const source = handle as unknown as Real
  return known<Manager>('TypeORM', source.options?.type, {
    transaction: (work, isolation) =>
      isolation ? source.transaction(isolation.toUpperCase(), work) : source.transaction(work),
    query: (tx, text) => (tx === undefined ? alone(source, text) : records(tx.queryRunner, text)),
  })
}

/** On the primary, in words: a DataSource may know replicas. */
async function alone(source: Real, text: string): Promise<SqlAnswer> {
  const runner = source.createQueryRunner('master')
  try {
    return await records(runner, text)
  } finally {
    await runner.release()
  }
}

/** Structured, because the rows of an UPDATE would come in a pair with their count. */
async function records(runner: Runner, text: string): Promise<SqlAnswer> {
  const { records = [], affected } = await runner.query(text, undefined, true)
  return affected === undefined || records.length > 0 ? records : { affectedRows: affected }
}
