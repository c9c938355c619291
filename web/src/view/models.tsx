import { useEffect, useState } from 'preact/hooks'
import type { Model } from '../agent/agent'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { useAct } from './act'
import { Icon } from './icon'
import { inform } from './notice'
import { Panel, Problem } from './panel'

/** ModelChoice shows the model that the agent uses now, and lets the person choose another. */
export function ModelChoice({ talk }: { talk: Talk }) {
  const { agent } = talk
  const [open, setOpen] = useState(false)
  if (!agent.calls.has('models.list')) return null
  const current = agent.models.value.find((model) => model.current)
  const close = () => setOpen(false)
  return (
    <>
      <button type="button" class="small model" aria-haspopup="dialog" onClick={() => setOpen(true)} aria-label={current ? t('modelIs', { name: current.name }) : t('models')}>
        <span dir="ltr">{current ? current.name : t('models')}</span><Icon name="down" />
      </button>
      <Panel title={t('models')} open={open} close={close}><Models talk={talk} close={close} /></Panel>
    </>
  )
}

function Models({ talk, close }: { talk: Talk; close: () => void }) {
  const { agent } = talk
  const [sought, setSought] = useState('')
  const { busy, problem, act } = useAct()
  useEffect(() => void act(() => agent.loadModels()), [talk])
  const all = agent.models.value
  const wanted = sought.toLocaleLowerCase()
  const found = all.filter(({ id, name, provider = '' }) => `${id} ${name} ${provider}`.toLocaleLowerCase().includes(wanted))
  const chooses = agent.calls.has('models.choose')
  const choose = async (model: Model | undefined) => {
    if (!(await act(() => agent.choose(model)))) return
    close()
    inform(model ? t('modelChosen', { name: model.name }) : t('modelOwn'))
  }
  return (
    <>
      <p class="quiet">{t('modelsText')}</p>
      {all.length > 8 && <input type="search" value={sought} aria-label={t('searchModels')} placeholder={t('searchModels')} onInput={(e) => setSought(e.currentTarget.value)} />}
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
      {found.length === 0 && !busy && <p class="quiet">{t('noModels')}</p>}
      {chooses && <button type="button" class="wide" disabled={busy} onClick={() => void choose(undefined)}>{t('modelDefault')}</button>}
    </>
  )
}
