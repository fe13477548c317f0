/**
 * Modules of `test/peers`, for the processes that the tests start: those run from `build/`, from where the folder's own `node_modules` is
 * not on the way.
 */
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const manifest = new URL('../../../../test/peers/package.json', import.meta.url)
const { resolve } = createRequire(manifest)

/** `Module` is the type of the module, by `typeof import('…')`. */
export async function peer<Module>(name: string): Promise<Module> {
  return (await import(pathToFileURL(resolve(name)).href)) as Module
}
