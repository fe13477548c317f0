/** Waits for a condition, never for a guess. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = 'the condition',
  limitMs = 20_000,
): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`${what} did not come true in ${limitMs} ms`)
    await new Promise((resume) => setTimeout(resume, 10))
  }
}
