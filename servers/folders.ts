/**
 * Folders of ours in a place that every account shares (`/tmp`, `/var/tmp`).
 *
 * Anybody may create a name there first, so a folder found is used only if it is a real directory, belongs to us, and nobody
 * else may write in it: what lies in it is executed, or is our data.
 */
import { chmodSync, closeSync, fsyncSync, lstatSync, mkdirSync, openSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, canReach } from './account.js'

/** An own folder, which the account can enter, below the first of the shared places where that is possible. */
export function ownFolder(account: Account | undefined, places: readonly string[]): string {
  const uid = process.getuid?.() ?? 0
  const problems: string[] = []
  for (const place of new Set([...places, tmpdir(), '/var/tmp', '/tmp'])) {
    const folder = join(place, `retrysafe-${uid}`)
    if (!canReach(account, place)) {
      problems.push(`${place} cannot be entered`)
      continue
    }
    try {
      mkdirSync(folder, { recursive: true, mode: 0o711 })
      const found = lstatSync(folder)
      if (found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0) {
        // The umask of the process may have taken the bit that lets the account pass through.
        if (account !== undefined) chmodSync(folder, 0o711)
        return folder
      }
      problems.push(`${folder} belongs to someone else, or others may write in it`)
    } catch (error) {
      problems.push(String(error))
    }
  }
  throw new Error(
    `No folder was found that ${account?.name ?? 'this user'} can reach (${problems.join('; ')}). ` +
      'Set TMPDIR to a folder that everybody may enter, or set DATABASE_URL to a PostgreSQL server of your own.',
  )
}

/** Makes a rename inside a directory durable. */
export function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
