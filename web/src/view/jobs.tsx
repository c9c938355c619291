import { useEffect, useRef, useState } from 'preact/hooks'
import type { Job } from '../agent/agent'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { useAction, type Action } from './action'
import { formatDay, formatTime } from './clock'
import { openDialog } from './dialog'
import { Panel, Problem } from './panel'

/** Example schedules in Hermes' syntax. */
const SCHEDULES = ['every 2h', 'every monday 9am', '0 9 * * *', 'in 30m', '2027-02-03T14:00:00'] as const
const schedules = { 'every 2h': 'scheduleEvery', 'every monday 9am': 'scheduleDays', '0 9 * * *': 'scheduleCron', 'in 30m': 'scheduleOnce', '2027-02-03T14:00:00': 'scheduleAt' } as const

/** JobsPanel shows the agent's scheduled jobs. */
export function JobsPanel({ client, open, close }: { client: Client; open: boolean; close: () => void }) {
  return <Panel title={t('jobs')} open={open} close={close}><JobList client={client} /></Panel>
}

function JobList({ client }: { client: Client }) {
  const { calls } = client.agent
  const [jobs, setJobs] = useState<readonly Job[]>()
  const doing = useAction()
  const load = async () => setJobs((await calls.call<{ jobs: Job[] }>('jobs.list')).jobs)
  useEffect(() => void doing.run(load), [client])
  return (
    <div class="jobs-panel" tabindex={-1}>
      <p class="muted">{t('jobsText')}</p>
      <Problem text={doing.problem} />
      {jobs?.length === 0 && <p>{t('noJobs')}</p>}
      {jobs && jobs.length > 0 && <ul class="jobs">{jobs.map((job) => <JobRow key={job.id} client={client} job={job} doing={doing} load={load} />)}</ul>}
      {calls.supports('jobs.create') && <NewJobForm client={client} load={load} />}
    </div>
  )
}

function formatWhen(at: string): string {
  const then = Date.parse(at)
  return [formatDay(then), formatTime(then)].filter(Boolean).join(', ') || at
}

function JobRow({ client, job, doing: { busy, run }, load }: { client: Client; job: Job; doing: Action; load: () => Promise<void> }) {
  const { calls } = client.agent
  const name = job.name || job.id
  const does = (what: string) => () => void run(async () => {
    await calls.call('jobs.' + what, { id: job.id })
    await load()
  })
  const remove = () => openDialog({
    title: t('deleteJob'), text: t('deleteJobConfirm', { name }), label: t('delete'), danger: true, back: '.jobs-panel',
    run: async () => {
      await calls.call('jobs.delete', { id: job.id })
      await run(load)
      return true
    },
  })
  return (
    <li>
      <h3 dir="auto">{name}{job.paused && <span class="tag">{t('jobPaused')}</span>}</h3>
      <p class="job-prompt" dir="auto">{job.prompt}</p>
      <dl class="facts">
        <dt>{t('schedule')}</dt><dd dir="auto">{job.schedule}</dd>
        {job.next_at && !job.paused && <><dt>{t('nextRun')}</dt><dd>{formatWhen(job.next_at)}</dd></>}
        {job.last_at && <><dt>{t('lastRun')}</dt><dd dir="auto">{formatWhen(job.last_at)}{job.last_status && ` (${job.last_status})`}</dd></>}
        {job.deliver && job.deliver !== 'local' && <><dt>{t('deliversTo')}</dt><dd dir="auto">{job.deliver}</dd></>}
      </dl>
      <div class="job-acts" role="group" aria-label={t('jobActions', { name })}>
        {calls.supports('jobs.run') && <button type="button" class="small" disabled={busy} onClick={does('run')}>{t('runNow')}</button>}
        {job.paused
          ? calls.supports('jobs.resume') && <button type="button" class="small" disabled={busy} onClick={does('resume')}>{t('resumeJob')}</button>
          : calls.supports('jobs.pause') && <button type="button" class="small" disabled={busy} onClick={does('pause')}>{t('pauseJob')}</button>}
        {calls.supports('jobs.delete') && <button type="button" class="small danger" disabled={busy} onClick={remove}>{t('delete')}</button>}
      </div>
    </li>
  )
}

function NewJobForm({ client, load }: { client: Client; load: () => Promise<void> }) {
  const [open, setOpen] = useState(false)
  const [name, setName] = useState('')
  const [schedule, setSchedule] = useState('')
  const [prompt, setPrompt] = useState('')
  const { busy, problem, run } = useAction()
  const first = useRef<HTMLInputElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const opened = useRef(false)
  // Keep the keyboard focus with the form.
  useEffect(() => {
    if (open) first.current?.focus()
    else if (opened.current) button.current?.focus()
    opened.current = open
  }, [open])
  const submit = async (event: Event) => {
    event.preventDefault()
    const made = await run(() => client.agent.calls.call('jobs.create', { name: name.trim(), schedule: schedule.trim(), prompt: prompt.trim() }))
    if (!made) return
    setOpen(false)
    setName('')
    setSchedule('')
    setPrompt('')
    await run(load)
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
