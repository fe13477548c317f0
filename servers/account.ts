/**
 * Which account PostgreSQL runs under.
 *
 * PostgreSQL refuses to run as root, and containers often have nothing else. Root therefore starts it as an account that
 * every Linux has; anybody else starts it as himself. Whether that account can reach a file is asked of the kernel, by a
 * shell that runs as the account, and not computed from mode bits: access lists, mount options and user namespaces would
 * make the computation wrong.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** An account to run a server as; `undefined` in its place means the one we are. */
export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** `postgres` before `nobody`: where it exists, nothing but database servers shares its rights. */
const candidates = ['postgres', 'nobody']

/** The spawn options that put a child under an account; its working directory is one that every account can enter. */
export function underAccount(account: Account | undefined): { cwd: string; uid?: number; gid?: number } {
  return account === undefined ? { cwd: '/' } : { cwd: '/', uid: account.uid, gid: account.gid }
}

function shellSucceeds(account: Account | undefined, script: string, argument: string): boolean {
  const { status } = spawnSync('/bin/sh', ['-c', script, 'sh', argument], {
    ...underAccount(account),
    stdio: 'ignore',
  })
  return status === 0
}

/** Whether the account can enter a directory (or execute a file). */
export function canReach(account: Account | undefined, path: string): boolean {
  return shellSucceeds(account, 'test -x "$1"', path)
}

/** The accounts of the system's password file, by name. */
function readAccounts(): Map<string, Account> {
  const accounts = new Map<string, Account>()
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name, , uid, gid] = line.split(':')
    if (name === undefined || !/^\d+$/.test(uid ?? '') || !/^\d+$/.test(gid ?? '')) continue
    accounts.set(name, { name, uid: Number(uid), gid: Number(gid) })
  }
  return accounts
}

/**
 * The account to run PostgreSQL as: `undefined` for an ordinary user, an unprivileged account for root.
 *
 * @throws Error when root finds no account that it may become (a user namespace without mapped accounts, for one).
 */
export function chooseAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const accounts = readAccounts()
  for (const name of candidates) {
    const account = accounts.get(name)
    if (account !== undefined && account.uid !== 0 && shellSucceeds(account, 'test -d "$1"', '/'))
      return account
  }
  throw new Error(
    `PostgreSQL does not run as root, and none of the accounts ${candidates.join(', ')} can be used here. ` +
      'Run as an ordinary user, or set DATABASE_URL to a PostgreSQL server of your own.',
  )
}
