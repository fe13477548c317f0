/**
 * The script of the order form, served as `/order-form.js`.
 *
 * It only spares the server a second request. What makes a second one harmless is the key in the form, which is there
 * without any script. It lets the browser send the form itself, so reload and back button work as everywhere.
 */
export const orderFormScript = `'use strict'
const form = document.getElementById('order-form')
const button = form.querySelector('button')
const status = document.getElementById('order-status')
const label = button.textContent
let timer

function sending(on) {
  form.dataset.sending = on ? 'yes' : 'no'
  button.disabled = on
  button.textContent = on ? 'Placing order…' : label
  form.setAttribute('aria-busy', String(on))
  clearTimeout(timer)
}

form.addEventListener('submit', (event) => {
  // A second click or Enter while the first is under way.
  if (form.dataset.sending === 'yes') return event.preventDefault()
  sending(true)
  status.textContent = 'Placing order…'
  // No answer, or the user stopped it: sending the same form again carries the same key and cannot order twice.
  timer = setTimeout(() => {
    sending(false)
    status.textContent = 'No answer yet. You can safely try again: it will not order twice.'
  }, 15000)
})

// Back to this page from the browser's memory: it was left with the button disabled.
addEventListener('pageshow', () => {
  sending(false)
  status.textContent = ''
})
`
