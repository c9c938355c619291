import type { ToolItem } from '../conversation/item'
import { count, t, type Key } from '../i18n/i18n'
import { Icon } from './icon'

const states: Record<string, Key> = { started: 'toolRuns', progress: 'toolRuns', done: 'toolDone', failed: 'toolFailed' }

/** ToolSteps shows the tool calls of a turn, folded. */
export function ToolSteps({ item }: { item: ToolItem }) {
  const last = item.steps.at(-1)
  if (!last) return null
  const running = item.steps.some((step) => step.state === 'started' || step.state === 'progress')
  return (
    <details class={`tools ${running ? 'running' : ''}`}>
      <summary><Icon name="tool" /><span dir="auto">{running || item.steps.length === 1 ? `${last.name}${last.title ? ': ' + last.title : ''}` : count('toolsUsed', item.steps.length)}</span></summary>
      <ul>
        {item.steps.map((step) => (
          <li key={step.id} class={step.state}>
            <b dir="auto">{step.name}</b> {step.title && <code dir="auto">{step.title}</code>} <span class="muted">{states[step.state] ? t(states[step.state]!) : step.state}</span>
            {step.text && <pre dir="auto" tabindex={0}>{step.text}</pre>}
          </li>
        ))}
      </ul>
    </details>
  )
}
