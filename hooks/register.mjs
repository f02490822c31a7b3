// Runs our commands in the client (2.1.287 and later): calls the engine and does what its answer says. The engine makes
// every decision and writes every message. If a function here fails, the classic hooks (shell commands) answer.
//
// The client parses this file before it runs it. So the names of events are literals, and only top-level functions get `$`.

import { ask, fork, recordClientCall, runAndLogError, showText, showTextInSession, settle } from './asking.mjs'
import { drawBand, forgetBand, measureSession } from './band.mjs'
import { closeCard, drawCard, showCard } from './card.mjs'
import { COMMANDS, PREFIXED_COMMANDS, PROMPT_IN_LIST_MESSAGE } from './commands.mjs'
import { compact, compactAboveThreshold, showChoice, showRemark, trim } from './compacting.mjs'
import { recordChange, recordEdit } from './draft.mjs'
import { open, openSoon, startTurn, submit } from './opening.mjs'
import { drawPane, isForPane, move, showPane } from './pane.mjs'
import { WAITING_MS } from './shared_values.mjs'
import { answerTool, askAtStart, endTurn, registerTools } from './tool.mjs'

const answer = async ($, command, args) => {
  let reply = await settle($, command, args)
  while (reply.wait) {
    const usualStatus = reply.wait, words = reply.args, forked = { model: await runAndLogError($, () => $.session.model()) }
    try {
      while (reply.wait) {
        $.ui.status(reply.wait)
        if (reply.fork) {
          Object.assign(forked, await fork($, reply.fork))
          $.ui.status(usualStatus) // If this model gave no answer, another model is asked.
        }
        reply = await ask($, { command, args: words, waiting: true, forked }, 'engine', WAITING_MS)
      }
    } catch (error) {
      $.clock.after(0, () => runAndLogError($, async () => showText($, await ask($, { command: 'left', args: command }))))
      if (!String(error).endsWith('aborted')) throw error // The user pressed Esc.
      return {}
    } finally { $.ui.status(undefined) }
    reply = await settle($, command, words, reply)
  }
  if (reply.text) return { text: reply.text, isTextDisplayOnly: true }
  if (reply.pane) await showPane($, reply.pane)
  if (reply.card) await showCard($, reply.card)
  if (reply.compact) $.clock.after(0, () => trim($, reply))
  if (reply.open) openSoon($, reply)
  return {}
}

const refusedSessions = new Set() // The sessions for which the user was told that the API refuses them.
const offerRepair = async ($, errorText) => {
  const id = await $.session.id()
  if (refusedSessions.has(id)) return
  refusedSessions.add(id)
  const reply = await settle($, 'fsck', errorText, undefined, false)
  if (reply.open) await open($, reply)
  else if (reply.text) $.ui.log(reply.text)
  else refusedSessions.delete(id)
}

const finishTurn = async $ => {
  const measured = await measureSession($)
  await showChoice($, measured)
  await compactAboveThreshold($, measured)
}

const LARGE_TOKENS = 100000 // hooks/session-start has the same number.
const showCost = async ($, { session_id, transcript_path, context_tokens, prompt_cache_likely_expired, estimated_cache_write_usd }) => {
  const cacheFacts = { context_tokens, prompt_cache_likely_expired, estimated_cache_write_usd }
  const reply = await ask($, { command: 'cold', session_id, transcript_path, ...cacheFacts }) // After this, the classic hook shows nothing.
  $.clock.after(0, () => runAndLogError($, () => showTextInSession($, session_id, reply)))
}

const showError = ($, e, next) => ({ text: next.error.message, isTextDisplayOnly: true })
const passOn = ($, e, next) => next(e) // Lets the classic hook answer the event.

export function register(on) {
  const registeredNames = new Set() // The names that we could register. Other commands with our names belong to the user or to other plugins.
  on('session.start', async ($, e, next) => {
    for (const each of COMMANDS) {
      await runAndLogError($, async () => {
        await $.command.register(each)
        registeredNames.add(each.name)
      })
    }
    await runAndLogError($, () => registerTools($))
    return next(e)
  })
  for (const { name } of COMMANDS)
    on('command.run', { command: name }, ($, e, next) => registeredNames.has(name) ? answer($, name, e.args) : next(e)).catch(showError)
  for (const name of PREFIXED_COMMANDS)
    on('command.run', { command: name }, ($, e) => answer($, name, e.args)).catch(passOn)
  on('command.run', { command: 'resume-hooks:recover-context' }, ($, e, next) => // With words, the skill of the same name runs.
    e.args?.trim() ? next(e) : answer($, 'resume-hooks:recover-context', '')).catch(passOn)
  on('ui.render', { component: 'Pane' }, ($, e, next) => drawPane($, e, () => drawCard($, e, next))).catch(passOn)
  on('ui.render', { component: 'AbovePrompt' }, drawBand).catch(passOn)
  on('ui.focus', { component: 'Pane' }, ($, e, next) => move($, e, next)).catch(passOn)
  on('prompt.submit', async ($, e, next) => await isForPane($, e) ? { drop: PROMPT_IN_LIST_MESSAGE } : submit($, e, next)).catch(passOn)
  on('prompt.edit', ($, e, next) => { // This takes 1.7 ms for each key, but no hook can be added later.
    recordEdit(e)
    return next(e)
  }).catch(passOn)
  on('prompt.change', ($, e, next) => {
    recordChange(e)
    return next(e)
  }).catch(passOn)
  on('turn.start', ($, e, next) => startTurn($, e, next)).catch(passOn)
  on('session.measure', ($, e, next) => {
    $.clock.after(0, () => measureSession($))
    return next(e)
  }).catch(passOn)
  on('session.compact', ($, e, next) => compact($, e, next)).catch(passOn)
  on('classic.SessionStart', async ($, e, next) => { // At this time the client's numbers are still those of the previous session.
    recordClientCall()
    forgetBand($)
    closeCard($)
    if (e.context_tokens) $.clock.after(0, () => measureSession($, e))
    if (e.source === 'resume' && e.prompt_cache_likely_expired && e.context_tokens >= LARGE_TOKENS) await runAndLogError($, () => showCost($, e))
    if ((await $.session.info()).dataRules?.length) await runAndLogError($, () => ask($, { command: 'rules' }))
    if (e.source === 'startup') await askAtStart($) // Done before the classic hook, which would show the same question.
    return next(e)
  }).catch(passOn)
  on('tool.call', { tool: 'mcp__resume-hooks__handoff' }, ($, e) => answerTool($, e))
  on('turn.complete', ($, e, next) => {
    if (!e.agentId) {
      showRemark($)
      closeCard($, Date.now() - e.durationMs)
      if (e.reason === 'answer') $.clock.after(0, () => runAndLogError($, () => finishTurn($))) // Done after this event, because the turn would wait.
    }
    endTurn($, e)
    return next(e)
  }).catch(passOn)
  on('classic.Stop', async ($, e, next) => { // If the band is shown, the classic hook shows nothing.
    recordClientCall()
    if ((await $.session.surfaces()).includes('terminal')) await measureSession($)
    return next(e)
  }).catch(passOn)
  on('classic.StopFailure', ($, e, next) => {
    const errorText = e.last_assistant_message ?? ''
    if (errorText.includes('400') && !e.agent_id) $.clock.after(0, () => runAndLogError($, () => offerRepair($, errorText))) // Done after this event.
    return next(e)
  }).catch(passOn)
}
