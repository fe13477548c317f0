/** Writes findings down in one line each, for every store that looks at its server. */
import type { Finding } from '../store.js'

export function fine(id: string, found: string): Finding {
  return { id, level: 'ok', found }
}

export function finding(
  level: 'note' | 'warn' | 'error',
  id: string,
  found: string,
  means: string,
  advice: string,
): Finding {
  return { id, level, found, means, advice }
}

/** A duration to read, in the largest unit that leaves a whole number or one decimal. */
export function durationText(durationMs: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  const [name, size] = units.find(([, least]) => Math.abs(durationMs) >= least) ?? (['ms', 1] as const)
  return `${Math.round((durationMs / size) * 10) / 10} ${name}`
}
