// Preserves the text typed while another session opens, when the client empties the box in the middle of a word.

const STILL = 150 // milliseconds without a key after which what stands in the box is believed
const TRIES = 40 // how often the box is filled, where keys come meanwhile or a dialog has them

let boxText = '' // as the client last told of it
let draft // all that was typed since the opening began, whatever the box holds; undefined otherwise
let dropped // the prompt that was stopped last, which the client puts back into the box
let editedAt = 0

export function hearEdit(e) {
  boxText = splice(e.text, e)
  editedAt = Date.now()
  if (draft !== undefined) draft = splice(draft, e)
}

function splice(whole, { text, start, end, inputText }) { // counted from the end: the box can lack what was typed before
  const head = whole.length - (text.length - start), tail = whole.length - (text.length - end)
  return whole.slice(0, Math.max(head, 0)) + inputText + whole.slice(Math.max(tail, 0))
}

export function hearChange({ text, origin }) {
  boxText = text
  if (draft === undefined || ['clear', 'plugin'].includes(origin.kind)) return
  if (text === dropped || draft.includes(text)) return
  draft = text.startsWith(draft) ? text : `${draft}\n${text}` // such as a name that the client completed
}

export function beginDraft(text = boxText) { draft = text }
export function endDraft() { draft = undefined }
export function hasDraft() { return draft !== undefined }

export function holdPrompt(text) { // sent while the session opens: returned with all that stands before it
  dropped = text
  if (!endsDraft(text)) return text
  const whole = draft.trim()
  draft = ''
  return whole
}

function endsDraft(text) {
  return draft.trimEnd().endsWith(text.trimEnd())
}

export function wholePrompt(text) { // of one that is sent before the box is whole again; nothing where it can't be told
  if (endsDraft(text)) return draft.trim()
  dropped = text
}

const APART = '\u0020' // stands between a step and what is typed right behind it

export function beginDraftWith(lead) { // each on a line before it, but for those that the client put back
  const missing = lead.filter(each => !draft.includes(each))
  const isAlone = missing.length > 0 && draft === ''
  draft = [...missing, draft].filter(Boolean).join('\n')
  if (isAlone) draft += APART
  return draft
}

export async function restoreDraft($) { // into the box, and again where a key was lost to that
  for (let tries = 0; draft && tries < TRIES; tries++) {
    const wish = draft
    const { isFilled } = (await $.prompt.read()).text === wish ? { isFilled: true } : await $.prompt.fill({ text: wish })
    do await $.clock.sleep(STILL); while (Date.now() - editedAt < STILL)
    if (isFilled && (draft === wish || (await $.prompt.read()).text === draft)) break
  }
  endDraft()
}
