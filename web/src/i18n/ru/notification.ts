import type { notification as english } from '../en/notification'
import type { Translation } from '../template'

/** The texts of notifications, in Russian. */
export const notification: Translation<typeof english> = {
  noticeMessages: { one: '{n} новое сообщение', few: '{n} новых сообщения', many: '{n} новых сообщений', other: '{n} нового сообщения' },
  noticeFile: 'Гермес прислал файл',
  noticeCard: 'Гермес ждёт вашего ответа',
  noticeReview: 'Откройте, чтобы прочитать целиком и ответить.',
  noticeDevice: 'Ваши устройства: {name}. Если вы его не знаете, откройте страницу и отзовите его.',
  noticeDevices: 'Одно из ваших устройств изменилось. Откройте страницу и проверьте его.',
  noticeWake: 'Есть новое',
  noticeTest: 'Уведомления работают.',
  noticeNothing: 'Ничего нового',
  noticeAllow: 'Разрешить',
  noticeDeny: 'Отклонить',
  noticeAllowed: 'Разрешено.',
  noticeDenied: 'Отклонено.',
  noticeAnswered: 'Ответ: {what}',
  noticeBefore: 'Ответ уже дан.',
  noticeOver: 'Время для ответа вышло.',
  noticeRejected: 'Сервер не принял ваш ответ. Откройте страницу, чтобы узнать почему.',
  noticeNotReached: 'Не удалось связаться с сервером. Попробуйте ещё раз или откройте страницу, чтобы узнать, дошёл ли ответ.',
}
