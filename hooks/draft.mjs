// Keeps the text that the user types while another session opens, because the client empties the input box.

const STILL_MS = 150 // When no key was pressed for this number of milliseconds, the text in the box is complete.
const MAX_FILLS = 40 // How many times we try to fill the box, because keys or a dialog may prevent it.

let boxText = '' // The text in the box, as the client's last event reported it.
let draft // All text that was typed since a session began to open, even if it is not in the box. Undefined at other times.
let droppedPrompt // The last prompt that was not sent. The client puts it back into the box.
let editedAt = 0

export function recordEdit(e) {
  boxText = applyEdit(e.text, e)
  editedAt = Date.now()
  if (draft !== undefined) draft = applyEdit(draft, e)
}

function applyEdit(wholeText, { text, start, end, inputText }) { // Positions are counted from the end, because the box may lack earlier text.
  const head = wholeText.length - (text.length - start), tail = wholeText.length - (text.length - end)
  return wholeText.slice(0, Math.max(head, 0)) + inputText + wholeText.slice(Math.max(tail, 0))
}

export function recordChange({ text, origin }) {
  boxText = text
  if (draft === undefined || ['clear', 'plugin'].includes(origin.kind)) return
  if (text === droppedPrompt || draft.includes(text)) return
  draft = text.startsWith(draft) ? text : `${draft}\n${text}` // For example, the client completed a name.
}

export function beginDraft(text = boxText) { draft = text }
export function beginDraftWithout(step) { beginDraft(boxText.trimEnd() === step ? '' : boxText) } // The text `step` was put into the box of the session that closes.
export function endDraft() { draft = undefined }
export function hasDraft() { return draft !== undefined }

export function keepPrompt(text) { // Returns a prompt that was sent while the session opens, with all text before it.
  droppedPrompt = text
  if (!isEndOfDraft(text)) return text
  const prompt = draft.trim()
  draft = ''
  return prompt
}

function isEndOfDraft(text) {
  return draft.trimEnd().endsWith(text.trimEnd())
}

export function completePrompt(text) { // Returns a prompt that was sent before the box was restored, with the missing text. Returns nothing if that text is unknown.
  if (isEndOfDraft(text)) return draft.trim()
  droppedPrompt = text
}

const SEPARATOR = '\u0020' // Separates the next step from the text that the user types after it.

export function beginDraftWith(leadingTexts) { // Puts each text on a line of its own, except texts that the client has put back.
  const missingTexts = leadingTexts.filter(each => !draft.includes(each))
  const isAlone = missingTexts.length > 0 && draft === ''
  draft = [...missingTexts, draft].filter(Boolean).join('\n')
  if (isAlone) draft += SEPARATOR
  return draft
}

export async function restoreDraft($) { // Fills the box, and fills it again if a key was lost meanwhile.
  for (let tries = 0; draft && tries < MAX_FILLS; tries++) {
    const wantedText = draft
    const { isFilled } = (await $.prompt.read()).text === wantedText ? { isFilled: true } : await $.prompt.fill({ text: wantedText })
    do await $.clock.sleep(STILL_MS); while (Date.now() - editedAt < STILL_MS)
    if (isFilled && (draft === wantedText || (await $.prompt.read()).text === draft)) break
  }
}
