// Preserves the text that the user types while another session opens, because the client then empties the input box.

const STILL_MS = 150 // milliseconds without a key after which the text in the box is final
const MAX_FILLS = 40 // how often the box is filled, if keys interrupt that or a dialog has the focus

let boxText = '' // the text in the box according to the client's last event
let draft // all text typed since the opening began, even if the box does not contain it; undefined at other times
let droppedPrompt // the prompt that was stopped last; the client puts it back into the box
let editedAt = 0

export function hearEdit(e) {
  boxText = applyEdit(e.text, e)
  editedAt = Date.now()
  if (draft !== undefined) draft = applyEdit(draft, e)
}

function applyEdit(wholeText, { text, start, end, inputText }) { // positions count from the end, because the box may lack earlier text
  const head = wholeText.length - (text.length - start), tail = wholeText.length - (text.length - end)
  return wholeText.slice(0, Math.max(head, 0)) + inputText + wholeText.slice(Math.max(tail, 0))
}

export function hearChange({ text, origin }) {
  boxText = text
  if (draft === undefined || ['clear', 'plugin'].includes(origin.kind)) return
  if (text === droppedPrompt || draft.includes(text)) return
  draft = text.startsWith(draft) ? text : `${draft}\n${text}` // for example a name that the client completed
}

export function beginDraft(text = boxText) { draft = text }
export function beginDraftWithout(step) { beginDraft(boxText.trimEnd() === step ? '' : boxText) } // `step` belongs to the session that closes
export function endDraft() { draft = undefined }
export function hasDraft() { return draft !== undefined }

export function holdPrompt(text) { // returns a prompt sent while the session opens, with all text in front of it
  droppedPrompt = text
  if (!isEndOfDraft(text)) return text
  const prompt = draft.trim()
  draft = ''
  return prompt
}

function isEndOfDraft(text) {
  return draft.trimEnd().endsWith(text.trimEnd())
}

export function completePrompt(text) { // returns a prompt sent before the box was restored with its missing text, or nothing if unknown
  if (isEndOfDraft(text)) return draft.trim()
  droppedPrompt = text
}

const SEPARATOR = '\u0020' // separates a step from the text that is typed directly after it

export function beginDraftWith(leadingTexts) { // puts each text on a line of its own, except those that the client put back
  const missingTexts = leadingTexts.filter(each => !draft.includes(each))
  const isAlone = missingTexts.length > 0 && draft === ''
  draft = [...missingTexts, draft].filter(Boolean).join('\n')
  if (isAlone) draft += SEPARATOR
  return draft
}

export async function restoreDraft($) { // fills the box, and again if a key was lost meanwhile
  for (let tries = 0; draft && tries < MAX_FILLS; tries++) {
    const wish = draft
    const { isFilled } = (await $.prompt.read()).text === wish ? { isFilled: true } : await $.prompt.fill({ text: wish })
    do await $.clock.sleep(STILL_MS); while (Date.now() - editedAt < STILL_MS)
    if (isFilled && (draft === wish || (await $.prompt.read()).text === draft)) break
  }
}
