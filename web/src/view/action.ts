import { useState } from 'preact/hooks'
import { explain } from './explain'

/** Act does what the agent is asked for, and says what went wrong where the person is looking. */
export interface Act {
  busy: boolean
  problem: string
  /** true: it was done. */
  act: (what: () => Promise<unknown>) => Promise<boolean>
}

export function useAct(): Act {
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  const act = async (what: () => Promise<unknown>) => {
    setBusy(true)
    setProblem('')
    try {
      await what()
      return true
    } catch (error) {
      setProblem(explain(error))
      return false
    } finally {
      setBusy(false)
    }
  }
  return { busy, problem, act }
}

