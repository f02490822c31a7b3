// Draws the line above the prompt that shows how full the session is, from the size that the engine named.

import { ask } from './asking.mjs'
import { LOOK_TOKENS } from './shared_values.mjs'

let filled = {} // of the session that is measured: when to ask, and from how many tokens on to show or do what

export function forget($) {
  filled = {}
  redraw($)
}

function bandText() {
  return filled.band?.replace('{percent}', Math.round(100 * filled.tokens / filled.window))
}

let shownText // of the line, when the client was last asked to draw
function redraw($) { // only where it says something else: the client draws all of the screen for it
  if (bandText() === shownText) return
  shownText = bandText()
  $.ui.invalidate('ui.render')
}

// `started` is the client's event at a session's start: its own figures and id may still be the previous session's.
export async function measure($, started) {
  const id = started?.session_id ?? await $.session.id(), { context } = await $.session.usage()
  const tokens = started?.context_tokens ?? context.tokens, of = context.window // of the model, which may become another one
  if (!tokens) return {}
  if (filled.id !== id || filled.of !== of) filled = { id, of, look: LOOK_TOKENS }
  else if (tokens < filled.from) filled = { id, of, look: filled.from, line: filled.line }
  const now = filled
  now.tokens = tokens
  now.path = started?.transcript_path // so that no limit of the other session's model is taken
  if (tokens >= now.look) now.answered = learn($, now)
  await now.answered // as well where it was asked at the start, and the turn ended first
  redraw($)
  return now // `tells`: the per cent from which on the engine has a choice to tell of; `line`: what is to be done from where on
}

async function learn($, now) {
  const { id, look: before, tokens, path } = now
  now.look = Infinity // asked once
  try {
    const { look = Infinity, ...more } = await ask($, { command: 'band', tokens, session_id: id, ...path && { transcript_path: path } })
    Object.assign(now, more, { look })
  } catch (error) { // the engine failed, or came too late on a busy machine: the next turn asks again
    now.look = before
    $.ui.log(String(error), { to: 'debug' })
  }
}

export function drawBand($, e, next) {
  if (!filled.band) return next(e)
  const { Text } = $.ui.resolve(e)
  return h(Text, { dimColor: true, wrap: 'truncate-end' }, bandText())
}
