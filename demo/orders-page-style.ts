/** The style sheet of the order page: one column, system fonts, both colour schemes, contrast of 4.5 to 1 and more. */
export const orderPageStyle = `
:root {
  --ground: #f6f5f2; --card: #fff; --ink: #1c1b19; --quiet: #5f5b54; --line: #dcd8d0;
  --accent: #0b6b52; --on-accent: #fff; --good: #e7f3ee; --bad: #a32a1f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #161513; --card: #201f1c; --ink: #eeebe4; --quiet: #a8a298; --line: #3a3732;
    --accent: #5fd0ad; --on-accent: #06261c; --good: #17302a; --bad: #ff9b8e;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 38rem; margin: 0 auto; padding: clamp(1.25rem, 6vw, 4rem) 1.25rem; }
h1 { font-size: 1.9rem; line-height: 1.15; letter-spacing: -.02em; margin: 0 0 .5rem; }
h2 { font-size: 1.05rem; margin: 0 0 .5rem; }
header p { color: var(--quiet); margin: 0; }
form, .notice {
  background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1.25rem; margin: 1.5rem 0;
}
.notice.good { background: var(--good); border-color: transparent; }
.notice p:last-child { margin: .75rem 0 0; color: var(--quiet); }
p.notice { margin: 1.5rem 0; color: var(--ink); }
dl { display: grid; grid-template-columns: auto 1fr; gap: .2rem 1rem; margin: 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
label { display: block; font-weight: 600; margin-bottom: .25rem; }
input:not([type=hidden]) {
  width: 100%; font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--quiet);
  border-radius: 8px; padding: .6rem .75rem; margin-bottom: 1rem;
}
input::placeholder { color: var(--quiet); opacity: .7; }
input[aria-invalid] { border-color: var(--bad); margin-bottom: .25rem; }
.problem { color: var(--bad); margin: 0 0 1rem; }
button {
  width: 100%; min-height: 2.9rem; font: inherit; font-weight: 600; color: var(--on-accent); background: var(--accent);
  border: 0; border-radius: 8px; cursor: pointer;
}
button:hover { filter: brightness(1.08); }
button:disabled { opacity: .6; cursor: progress; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
#order-status { margin: .75rem 0 0; color: var(--quiet); font-size: .9rem; }
#order-status:empty { margin: 0; }
ol { list-style: none; padding: 0; margin: 0; }
li p { margin: 1rem 0 .35rem; color: var(--quiet); }
code { font: .84rem/1.5 ui-monospace, monospace; }
pre { margin: 0; padding: .75rem; overflow-x: auto; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; }
footer { display: flex; gap: 1.25rem; flex-wrap: wrap; margin-top: 2rem; }
a { color: var(--accent); }
`
