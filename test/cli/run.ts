/** The real program in a process of its own, as a shell would start it. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'

/** A copy of the package without one of its safeguards has its program there (`test/ablation`). */
export const program = join(
  process.env.RETRYSAFE_DIST ?? join(import.meta.dirname, '../../dist'),
  'cli/main.js',
)

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** What `--json` printed. */
  json<Shape>(): Shape
}

export interface How {
  readonly url?: string | undefined
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly program?: string
}

/** `url` goes into the environment, where people keep it. */
export function retrysafe(words: readonly string[], how: How = {}): Promise<Ran> {
  const { DATABASE_URL: _, ...inherited } = process.env
  const env = { ...inherited, ...how.env, ...(how.url !== undefined && { DATABASE_URL: how.url }) }
  return new Promise((done) => {
    execFile(
      process.execPath,
      [how.program ?? program, ...words],
      { env, cwd: how.cwd ?? process.cwd() },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code ?? -1)
        done({ code, stdout, stderr, json })
        /** A program that died has said why elsewhere. */
        function json<Shape>(): Shape {
          if (stdout === '') throw new Error(`nothing was printed (exit code ${code}): ${stderr}`)
          return JSON.parse(stdout)
        }
      },
    )
  })
}
