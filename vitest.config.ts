import { defineConfig } from 'vitest/config'
import { installedPostgres } from './servers/binaries.js'
import counts from './test/setup/counts.js'
import packagesIn from './test/setup/packages.js'

/** A copy of the package without one of its safeguards: a test that hangs on it is as red as one that fails. */
const ablated = process.env.RETRYSAFE_DIST
const limitMs = ablated === undefined ? 60_000 : 8000

/** The store once more on the PostgreSQL that is installed, if one is: the embedded one is always of the newest major. */
const installed = {
  extends: true as const,
  test: {
    name: 'installed',
    globalSetup: ['test/setup/postgres-installed.ts'],
    include: ['test/postgres/*.test.ts', 'test/suites/postgres.test.ts'],
    // PGlite brings a server of its own.
    exclude: ['test/postgres/pglite*'],
  },
}

export default defineConfig({
  resolve: { alias: packagesIn(ablated) },
  test: {
    // Forks: a test may end, stop or starve its own process without touching another file's.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: limitMs,
    hookTimeout: limitMs,
    // A test that passes on the second try has found something.
    retry: 0,
    reporters: ['default', counts()],
    globalSetup: ['test/setup/postgres.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'core',
          include: ['test/**/*.test.ts'],
          exclude: ['test/peers/**', 'test/sweeps/**', 'test/ablation/**'],
        },
      },
      {
        // Takes minutes: every fault in every way, and every safeguard taken out.
        extends: true,
        test: {
          name: 'sweeps',
          // Each of them starts a run of its own.
          maxConcurrency: 3,
          include: ['test/sweeps/**/*.test.ts', 'test/ablation/**/*.test.ts'],
        },
      },
      ...(installedPostgres() === undefined ? [] : [installed]),
      {
        // Needs `npm ci --prefix test/peers`: other servers, frameworks and their older versions.
        extends: true,
        test: {
          name: 'peers',
          include: ['test/peers/**/*.test.ts'],
          exclude: ['test/peers/node_modules/**'],
        },
      },
    ],
  },
})
