import { useState } from 'preact/hooks'
import { errorText } from './errorText'

/** Action runs a request and shows its error next to the control that started it. */
export interface Action {
  busy: boolean
  problem: string
  /** true: it succeeded. */
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

