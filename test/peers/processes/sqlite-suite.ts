/** Runs the store suite on `node:sqlite` in a Node that has it, without a test runner: told by its channel, case by case. */
import { casesFor, closeOutside, type Opening, prepare } from './sqlite-store.js'

/** What is sent for each case. */
export interface Ran {
  readonly name: string
  readonly failure?: string
}

process.on('message', async (opening: Opening) => {
  await prepare(opening)
  for (const { name, skip, run } of casesFor(opening)) {
    if (skip !== undefined) continue
    const failure = await run().then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? String(error.stack) : String(error)),
    )
    process.send?.({ name, ...(failure !== undefined && { failure }) } satisfies Ran)
  }
  closeOutside()
  process.disconnect()
})
