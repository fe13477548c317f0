/**
 * What callers have been doing of late: mostly new intents, or mostly retries.
 *
 * A claim that finds its intent done costs more than a look would have; a look before the claim of a new intent costs a round trip
 * (SPEED.md: 0.6 against 1.0 of a bare SELECT one way, 0.68 against 0.9 of the transaction the other). So the more frequent case is served.
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
