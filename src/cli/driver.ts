/** Finds a driver where the user has installed it: in the project that the command runs in, else beside this package. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CliError } from './errors.js'

/** The first package of the list that is installed, with its name. */
export async function installedDriver<Module>(
  cwd: string,
  names: readonly string[],
): Promise<{ readonly name: string; readonly module: Module }> {
  for (const name of names) {
    const file = fileOf(name, join(cwd, 'package.json')) ?? fileOf(name, import.meta.url)
    if (file === undefined) continue
    const module: Module & { readonly default?: Module } = await import(pathToFileURL(file).href)
    return { name, module: module.default ?? module }
  }
  const packages = names.map((name) => name.split('/')[0])
  const [first] = packages
  const message = `no driver for this store is installed: looked for ${packages.join(', ')}`
  throw new CliError('DRIVER_MISSING', message, `npm install ${first}, in the project that you run this in.`)
}

function fileOf(name: string, from: string): string | undefined {
  try {
    return createRequire(from).resolve(name)
  } catch {
    return undefined
  }
}
