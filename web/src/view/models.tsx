import { useEffect, useState } from 'preact/hooks'
import type { Model } from '../agent/agent'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { useAction } from './action'
import { Icon } from './icon'
import { showToast } from './toast'
import { Panel, Problem } from './panel'

/** ModelChoice shows the agent's current model and lets the user choose another. */
export function ModelChoice({ client }: { client: Client }) {
  const { agent } = client
  const [open, setOpen] = useState(false)
  if (!agent.calls.supports('models.list')) return null
  const current = agent.models.value.find((model) => model.current)
  const close = () => setOpen(false)
  return (
    <>
      <button type="button" class="small model" aria-haspopup="dialog" onClick={() => setOpen(true)} aria-label={current ? t('modelIs', { name: current.name }) : t('models')}>
        <span dir="ltr">{current ? current.name : t('models')}</span><Icon name="down" />
      </button>
      <Panel title={t('models')} open={open} close={close}><ModelList client={client} close={close} /></Panel>
    </>
  )
}

function ModelList({ client, close }: { client: Client; close: () => void }) {
  const { agent } = client
  const [query, setSought] = useState('')
  const { busy, problem, run } = useAction()
  useEffect(() => void run(() => agent.loadModels()), [client])
  const all = agent.models.value
  const wanted = query.toLocaleLowerCase()
  const found = all.filter(({ id, name, provider = '' }) => `${id} ${name} ${provider}`.toLocaleLowerCase().includes(wanted))
  const chooses = agent.calls.supports('models.choose')
  const choose = async (model: Model | undefined) => {
    if (!(await run(() => agent.chooseModel(model)))) return
    close()
    showToast(model ? t('modelChosen', { name: model.name }) : t('modelReset'))
  }
  return (
    <>
      <p class="muted">{t('modelsText')}</p>
      {all.length > 8 && <input type="search" value={query} aria-label={t('searchModels')} placeholder={t('searchModels')} onInput={(e) => setSought(e.currentTarget.value)} />}
      <Problem text={problem} />
      {[...new Set(found.map(({ provider = '' }) => provider))].map((provider) => (
        <section key={provider} class="models">
          {provider && <h3 dir="auto">{provider}</h3>}
          <ul>
            {found.filter((model) => (model.provider ?? '') === provider).map((model) => (
              <li key={model.id}>
                <button type="button" aria-pressed={model.current} disabled={busy || !chooses} onClick={() => void choose(model)}><span dir="ltr">{model.name}</span>{model.current && <Icon name="check" />}</button>
              </li>
            ))}
          </ul>
        </section>
      ))}
      {found.length === 0 && !busy && <p class="muted">{t('noModels')}</p>}
      {chooses && <button type="button" class="wide" disabled={busy} onClick={() => void choose(undefined)}>{t('modelDefault')}</button>}
    </>
  )
}
