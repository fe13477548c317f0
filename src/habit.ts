/**
 * What callers have been doing of late: mostly new intents, or mostly retries.
 *
 * A claim that finds its intent done costs more than a look would have; a look before the claim of a new intent costs a round trip
 * (measured: replays at 0.6 instead of 1.0 of a bare SELECT without the look, new intents at 0.68 instead of 0.9 of the bare transaction with
 * it). So the more frequent case is served.
 */

/** How much one call weighs against all before it: a change of habit shows after some ten calls. */
const weight = 0.1

export interface Habit {
  note(replayed: boolean): void
  mostlyReplays(): boolean
}

export function createHabit(): Habit {
  let replays = 0

  return {
    note: (replayed) => {
      replays += weight * ((replayed ? 1 : 0) - replays)
    },
    mostlyReplays: () => replays > 0.5,
  }
}
