import { useEffect, useRef, useState } from 'preact/hooks'
import type { Job } from '../agent/agent'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { useAct, type Act } from './act'
import { day, time } from './clock'
import { ask } from './dialog'
import { Panel, Problem } from './panel'

/** Schedules as Hermes takes them. */
const SCHEDULES = ['every 2h', 'every monday 9am', '0 9 * * *', 'in 30m', '2027-02-03T14:00:00'] as const
const schedules = { 'every 2h': 'scheduleEvery', 'every monday 9am': 'scheduleDays', '0 9 * * *': 'scheduleCron', 'in 30m': 'scheduleOnce', '2027-02-03T14:00:00': 'scheduleAt' } as const

/** Jobs is what the agent does at set times. */
export function Jobs({ talk, open, close }: { talk: Talk; open: boolean; close: () => void }) {
  return <Panel title={t('jobs')} open={open} close={close}><List talk={talk} /></Panel>
}

function List({ talk }: { talk: Talk }) {
  const { calls } = talk.agent
  const [jobs, setJobs] = useState<readonly Job[]>()
  const doing = useAct()
  const load = async () => setJobs((await calls.ask<{ jobs: Job[] }>('jobs.list')).jobs)
  useEffect(() => void doing.act(load), [talk])
  return (
    <div class="jobs-panel" tabindex={-1}>
      <p class="quiet">{t('jobsText')}</p>
      <Problem text={doing.problem} />
      {jobs?.length === 0 && <p>{t('noJobs')}</p>}
      {jobs && jobs.length > 0 && <ul class="jobs">{jobs.map((job) => <Line key={job.id} talk={talk} job={job} doing={doing} load={load} />)}</ul>}
      {calls.has('jobs.create') && <New talk={talk} load={load} />}
    </div>
  )
}

function when(at: string): string {
  const then = Date.parse(at)
  return [day(then), time(then)].filter(Boolean).join(', ') || at
}

function Line({ talk, job, doing: { busy, act }, load }: { talk: Talk; job: Job; doing: Act; load: () => Promise<void> }) {
  const { calls } = talk.agent
  const name = job.name || job.id
  const does = (what: string) => () => void act(async () => {
    await calls.ask('jobs.' + what, { id: job.id })
    await load()
  })
  const remove = () => ask({
    title: t('deleteJob'), text: t('deleteJobSure', { name }), label: t('delete'), danger: true, back: '.jobs-panel',
    run: async () => {
      await calls.ask('jobs.delete', { id: job.id })
      await act(load)
      return true
    },
  })
  return (
    <li>
      <h3 dir="auto">{name}{job.paused && <span class="tag">{t('jobPaused')}</span>}</h3>
      <p class="job-prompt" dir="auto">{job.prompt}</p>
      <dl class="facts">
        <dt>{t('schedule')}</dt><dd dir="auto">{job.schedule}</dd>
        {job.next_at && !job.paused && <><dt>{t('nextRun')}</dt><dd>{when(job.next_at)}</dd></>}
        {job.last_at && <><dt>{t('lastRun')}</dt><dd dir="auto">{when(job.last_at)}{job.last_status && ` (${job.last_status})`}</dd></>}
        {job.deliver && job.deliver !== 'local' && <><dt>{t('deliversTo')}</dt><dd dir="auto">{job.deliver}</dd></>}
      </dl>
      <div class="job-acts" role="group" aria-label={t('jobActions', { name })}>
        {calls.has('jobs.run') && <button type="button" class="small" disabled={busy} onClick={does('run')}>{t('runNow')}</button>}
        {job.paused
          ? calls.has('jobs.resume') && <button type="button" class="small" disabled={busy} onClick={does('resume')}>{t('resumeJob')}</button>
          : calls.has('jobs.pause') && <button type="button" class="small" disabled={busy} onClick={does('pause')}>{t('pauseJob')}</button>}
        {calls.has('jobs.delete') && <button type="button" class="small danger" disabled={busy} onClick={remove}>{t('delete')}</button>}
      </div>
    </li>
  )
}

function New({ talk, load }: { talk: Talk; load: () => Promise<void> }) {
  const [open, setOpen] = useState(false)
  const [name, setName] = useState('')
  const [schedule, setSchedule] = useState('')
  const [prompt, setPrompt] = useState('')
  const { busy, problem, act } = useAct()
  const first = useRef<HTMLInputElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const opened = useRef(false)
  // Whoever uses the keyboard is taken along.
  useEffect(() => {
    if (open) first.current?.focus()
    else if (opened.current) button.current?.focus()
    opened.current = open
  }, [open])
  const submit = async (event: Event) => {
    event.preventDefault()
    const made = await act(() => talk.agent.calls.ask('jobs.create', { name: name.trim(), schedule: schedule.trim(), prompt: prompt.trim() }))
    if (!made) return
    setOpen(false)
    setName('')
    setSchedule('')
    setPrompt('')
    await act(load)
  }
  if (!open) return <button type="button" class="primary wide" ref={button} onClick={() => setOpen(true)}>{t('newJob')}</button>
  return (
    <form class="new-job" onSubmit={submit} aria-label={t('newJob')}>
      <h3>{t('newJob')}</h3>
      <label>{t('jobName')}<input ref={first} value={name} onInput={(e) => setName(e.currentTarget.value)} maxLength={200} required dir="auto" autocomplete="off" /></label>
      <label>{t('schedule')}<input value={schedule} onInput={(e) => setSchedule(e.currentTarget.value)} required dir="ltr" autocomplete="off" autocapitalize="off" spellcheck={false} placeholder="every 2h" aria-describedby="schedules" /></label>
      <dl class="schedules" id="schedules">
        {SCHEDULES.map((form) => <div key={form}><dt><code dir="ltr">{form}</code></dt><dd>{t(schedules[form])}</dd></div>)}
      </dl>
      <label>{t('jobPrompt')}<textarea rows={3} value={prompt} onInput={(e) => setPrompt(e.currentTarget.value)} maxLength={5000} required dir="auto" /></label>
      <Problem text={problem} />
      <div class="choices">
        <button type="button" onClick={() => setOpen(false)}>{t('cancel')}</button>
        <button type="submit" class="primary" disabled={busy}>{t('createJob')}</button>
      </div>
    </form>
  )
}
