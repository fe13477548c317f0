/** The commands, in the order in which they are told, and what is told about each. */
import { readFileSync } from 'node:fs'
import type { Command } from './command.js'
import { doctor } from './doctor.js'
import { list } from './list.js'
import { migrate } from './migrate.js'
import { release } from './release.js'
import { resolve } from './resolve.js'
import { show } from './show.js'
import { sql } from './sql.js'
import { sweep } from './sweep.js'

export const commands: readonly Command[] = [doctor, migrate, sql, list, show, release, resolve, sweep]

const exitCodes = 'Exit codes: 0 good; 1 the answer is bad news; 2 could not run, or cannot tell.'

export const overview = `retrysafe <command> [options]

${commands.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`).join('\n')}

  --json prints one JSON document, for errors too; --help after a command tells its options.

${exitCodes}`

export function helpOf({ name, summary, usage, details }: Command): string {
  return `retrysafe ${name} [options]: ${summary}

${usage}
  --json             one JSON document on stdout, for errors too
  --help             this text

${details}
${exitCodes}`
}

export function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return String((manifest as { version?: unknown }).version)
}
