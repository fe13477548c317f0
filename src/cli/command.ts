/** What a command is, and how it reads what it was given. */
import type { ParseArgsConfig } from 'node:util'
import { CliError } from './errors.js'

export type OptionTypes = NonNullable<ParseArgsConfig['options']>

/** What a command has to say; `main.ts` prints it. */
export interface Report {
  /** 0 good, 1 the answer is bad news, 2 could not run or cannot tell. */
  readonly exitCode: 0 | 1 | 2
  /** For `--json`. */
  readonly json: unknown
  /** For people. */
  readonly text: string
  /** Whether it is no answer but says why there is none; for people it then goes to stderr. */
  readonly isComplaint?: boolean
}

/** Where a command runs. */
export interface World {
  readonly cwd: string
  /** The command line, after the name of the program. */
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface Given {
  readonly values: Readonly<Record<string, unknown>>
  readonly positionals: readonly string[]
  readonly world: World
}

export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** Lines after the name: positionals and options of its own. */
  readonly usage: string
  /** More than the options say: examples, and when the exit code is 1. */
  readonly details: string
  readonly options: OptionTypes
  run(given: Given): Promise<Report>
}

export function textGiven({ values }: Given, name: string): string | undefined {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}

export function textNeeded(given: Given, name: string): string {
  const value = textGiven(given, name)
  if (value === undefined) throw new CliError('USAGE', `--${name} is missing`)
  return value
}

export function textsGiven({ values }: Given, name: string): readonly string[] {
  const value = values[name]
  return Array.isArray(value) ? value.map(String) : []
}

export function isGiven({ values }: Given, name: string): boolean {
  return values[name] === true
}

/** A whole number of at least 0. */
export function numberGiven(given: Given, name: string): number | undefined {
  const text = textGiven(given, name)
  if (text === undefined) return undefined
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw new CliError('USAGE', `--${name} must be a whole number`)
  return Number(text)
}

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** `72h`, `90s`, `1.5d`, in ms. */
export function durationMs(text: string, what: string): number {
  const [, figure, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|min|h|d)$/.exec(text) ?? []
  if (figure === undefined)
    throw new CliError('USAGE', `${what} must be a duration, such as 30min, 24h or 3d`)
  return Math.round(Number(figure) * (unitsMs[unit] ?? 1))
}
