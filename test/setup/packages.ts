/** Where the tests find the package: in `dist/`, or in a copy of it that lacks a safeguard (`test/ablation`). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

interface Alias {
  readonly find: string | RegExp
  readonly replacement: string
}

/** Names of the package, and relative paths into `dist/`, as names of files in another folder; none without one. */
export default function packagesIn(folder: string | undefined): Alias[] {
  if (folder === undefined) return []
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { default: string } | string>
  }
  const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
    typeof target === 'string'
      ? []
      : [
          {
            find: new RegExp(`^retrysafe${name.slice(1)}$`),
            replacement: target.default.replace('./dist', folder),
          },
        ],
  )
  return [...entries, { find: /^(?:\.\.\/)+dist\//, replacement: `${folder}/` }]
}
