import { useState } from 'preact/hooks'
import { errorText } from './errorText'

/** Act does what the agent is asked for, and says what went wrong where the person is looking. */
export interface Action {
  busy: boolean
  problem: string
  /** true: it was done. */
  run: (what: () => Promise<unknown>) => Promise<boolean>
}

export function useAction(): Action {
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  const act = async (what: () => Promise<unknown>) => {
    setBusy(true)
    setProblem('')
    try {
      await what()
      return true
    } catch (error) {
      setProblem(errorText(error))
      return false
    } finally {
      setBusy(false)
    }
  }
  return { busy, problem, run: act }
}

