/**
 * Modules of `test/peers`, for what runs from `build/`: the processes that the tests start, and the bench. From there the folder's own
 * `node_modules` is not on the way.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** `test/peers`, seen from the source of this file and from `build/`. */
export const folder =
  [join(import.meta.dirname, '../test/peers'), join(import.meta.dirname, '../../test/peers')].find((one) =>
    existsSync(join(one, 'package.json')),
  ) ?? ''
const { resolve } = createRequire(join(folder, 'package.json'))

/** `Module` is the type of the module, by `typeof import('…')` where its types are installed. */
export async function peer<Module>(name: string): Promise<Module> {
  return (await import(pathToFileURL(resolve(name)).href)) as Module
}

/** Those of the names that `npm ci --prefix test/peers` has yet to bring. */
export function missingPeers(names: readonly string[]): string[] {
  return names.filter((name) => {
    try {
      resolve(name)
      return false
    } catch {
      return true
    }
  })
}
