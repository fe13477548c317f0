/** Median and quartiles: a single slow round (a neighbour on the same cores) moves a mean, and these hardly. */

export interface Spread {
  readonly median: number
  /** First and third quartile: half of the rounds lie between them. */
  readonly low: number
  readonly high: number
}

export function spreadOf(samples: readonly number[]): Spread {
  const sorted = samples.toSorted((left, right) => left - right)
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) }
}

/** Between the two nearest ranks, linearly. */
function quantile(sorted: readonly number[], part: number): number {
  const at = (sorted.length - 1) * part
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? Number.NaN
  return below + (above - below) * (at - Math.floor(at))
}
