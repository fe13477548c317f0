#!/usr/bin/env node
/**
 * The command line `retrysafe`. Parses, runs one command, prints its report, and ends the process: nowhere else is it ended.
 *
 * With `--json` there is one document on stdout, for errors too. Without it, answers go to stdout and complaints to stderr.
 */
import { parseArgs } from 'node:util'
import type { Command, Report, World } from './command.js'
import { CliError, complaintOf } from './errors.js'
import { jsonText } from './format.js'
import { commands, helpOf, overview, version } from './help.js'
import { withoutSecrets } from './secrets.js'

const words = process.argv.slice(2)
const world: World = { cwd: process.cwd(), env: process.env, words }
const asJson = words.includes('--json')
let isEnding = false

// A driver or a module of the user's may fail on its own, when nobody waits for it: that too is told, and without its secrets.
process.on('uncaughtException', (error) => end(complaint(error)))
// Reached only while there is no answer: nothing is left that could give one, and silence would pass for good news.
process.once('beforeExit', () => end(complaint(new Error('nothing is left to wait for'))))
void answer(words).then(end, (error: unknown) => end(complaint(error)))

async function answer([name, ...rest]: readonly string[]): Promise<Report> {
  if (name === undefined) return { ...told(overview), exitCode: 2, isComplaint: true }
  if (['--help', '-h', 'help'].includes(name)) return told(helpFor(rest[0]))
  if (['--version', '-v'].includes(name)) return told(version())
  const command = commandNamed(name)
  const { values, positionals } = parsed(command, rest)
  if (values.help === true) return told(helpOf(command))
  return command.run({ values, positionals, world })
}

function helpFor(name: string | undefined): string {
  return name === undefined || name.startsWith('-') ? overview : helpOf(commandNamed(name))
}

function commandNamed(name: string): Command {
  const command = commands.find((one) => one.name === name)
  if (command !== undefined) return command
  throw new CliError('USAGE', `there is no command ${jsonText(name)}`, 'Run `retrysafe --help`.')
}

function parsed(command: Command, rest: readonly string[]) {
  const options = {
    ...command.options,
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  } as const
  try {
    return parseArgs({ args: [...rest], options, allowPositionals: false })
  } catch (error) {
    const message = error instanceof Error ? error.message : 'the options cannot be read'
    throw new CliError(
      'USAGE',
      message.split('. ')[0] ?? message,
      `Run \`retrysafe ${command.name} --help\`.`,
    )
  }
}

function told(text: string): Report {
  return { exitCode: 0, json: { text }, text }
}

function complaint(error: unknown): Report {
  const clean = withoutSecrets(complaintOf(error), world)
  const text = `${clean.code}: ${clean.message}\n${clean.advice}`
  return { exitCode: 2, json: { error: clean }, text, isComplaint: true }
}

/** Ends once all is written: a pipe may not have taken it yet, and what fails meanwhile is no second answer. */
function end({ exitCode, json, text, isComplaint }: Report): void {
  if (isEnding) return
  isEnding = true
  const output = asJson ? jsonText(json) : text
  const stream = isComplaint && !asJson ? process.stderr : process.stdout
  // A reader that has seen enough (`| head`) is no fault.
  stream.on('error', () => process.exit(exitCode))
  stream.write(`${output}\n`, () => process.exit(exitCode))
}
