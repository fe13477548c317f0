/**
 * Modules of `test/peers`, for the processes that the tests start: those run from `build/`, from where the folder's own `node_modules` is
 * not on the way.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** `test/peers`, seen from the source of this file and from `build/`. */
export const folder =
  [join(import.meta.dirname, '..'), join(import.meta.dirname, '../../../../test/peers')].find((one) =>
    existsSync(join(one, 'package.json')),
  ) ?? ''
const { resolve } = createRequire(join(folder, 'package.json'))

/** `Module` is the type of the module, by `typeof import('…')`. */
export async function peer<Module>(name: string): Promise<Module> {
  return (await import(pathToFileURL(resolve(name)).href)) as Module
}
